//! libampl.so
