/* The stand-in as HIP's runtime. */
#define HIP
#include "fake_devices.cc"
