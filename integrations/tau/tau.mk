# Prints the options that sources including TAU's headers are compiled with.
include $(TAU_MAKEFILE)

ampl-options:
	@echo $(TAU_DEFS) $(TAU_INCLUDE)

.DEFAULT_GOAL := ampl-options
