/* A stand-in for CUDA's driver (libcuda.so.1) and HIP's runtime (libamdhip64.so.6): memory that a program has named is a
 * device's. Both functions fail for other addresses, as the real ones do. */
#include <cstdint>
#include <cstring>

namespace {

constexpr int most = 16;
struct Range {
    uintptr_t from, bytes;
    int device;
} ranges[most];
int count = 0, last_error = 0;

const Range *find(uintptr_t at) {
    for (int i = 0; i < count; i++) {
        if (at - ranges[i].from < ranges[i].bytes) return &ranges[i];
    }
    return nullptr;
}

} // namespace

extern "C" {

/* What cudaMalloc and hipMalloc know. */
void stand_in_add(void *at, uintptr_t bytes, int device) {
    if (count < most) ranges[count++] = {reinterpret_cast<uintptr_t>(at), bytes, device};
}

#ifdef HIP
struct Attributes {
    int type, device;
    void *device_pointer, *host_pointer;
    int is_managed;
    unsigned flags;
};

int hipPointerGetAttributes(Attributes *out, const void *at) {
    const Range *found = find(reinterpret_cast<uintptr_t>(at));
    if (!found) return last_error = 1;
    std::memset(out, 0, sizeof *out);
    out->type = 2;
    out->device = found->device;
    out->device_pointer = const_cast<void *>(at);
    return 0;
}

int hipPeekAtLastError(void) { return last_error; }

int hipGetLastError(void) {
    int was = last_error;
    last_error = 0;
    return was;
}
#else
int cuPointerGetAttribute(void *out, int attribute, unsigned long long at) {
    const Range *found = find(at);
    if (!found) return 1;
    /* The place is as large as the attribute. */
    switch (attribute) {
    case 2: *static_cast<unsigned *>(out) = 2; return 0;
    case 8: *static_cast<unsigned char *>(out) = 0; return 0;
    case 9: *static_cast<int *>(out) = found->device; return 0;
    default: return 801;
    }
}
#endif
}
