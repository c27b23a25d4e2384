/* A stand-in for Caliper's header: the functions and classes that the example uses, by the same names in the library. */
#ifndef CALI_STAND_IN_H
#define CALI_STAND_IN_H

extern "C" {
void cali_begin_region(const char *name);
void cali_end_region(const char *name);
void cali_begin_comm_region(const char *name);
void cali_end_comm_region(const char *name);
}

namespace cali {
class Function {
public:
    Function(const char *name);
    ~Function();
};
} // namespace cali

#define CALI_CXX_MARK_FUNCTION cali::Function cali_function_(__func__)
#define CALI_MARK_BEGIN(name) cali_begin_region(name)
#define CALI_MARK_END(name) cali_end_region(name)
#define CALI_MARK_COMM_REGION_BEGIN(name) cali_begin_comm_region(name)
#define CALI_MARK_COMM_REGION_END(name) cali_end_comm_region(name)

#endif
