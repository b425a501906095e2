// The part of DLPack's C interface, version 1 (https://dmlc.github.io/dlpack), that calls on tensors need.
// Its structs are stable within a major version, and a framework's table of functions only grows.
#pragma once
#include <cstdint>

namespace maxops::dlpack {

constexpr std::uint32_t kMajor = 1, kTableSince = 3;  // the minor version that added the table
constexpr const char* kTableName = "dlpack_exchange_api";

struct Version {
    std::uint32_t major, minor;
};

struct Device {
    std::int32_t type, number;
};
constexpr std::int32_t kCpu = 1;

struct ElementType {
    std::uint8_t code, bits;
    std::uint16_t lanes;
};
enum Code : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBFloat = 4, kBool = 6 };

struct Tensor {
    void* data;
    Device device;
    std::int32_t rank;
    ElementType type;
    std::int64_t* sizes;
    std::int64_t* strides;  // in elements; null in C order
    std::uint64_t offset;   // of the first element, in bytes
};

struct OwnedTensor {
    Version version;
    void* context;
    void (*release)(OwnedTensor*);
    std::uint64_t flags;
    Tensor tensor;
};

// The content of a type's capsule `__dlpack_c_exchange_api__`. The functions return 0, or -1 with an error
// set.
struct Table {
    Version version;
    Table* older;
    // Allocates a tensor of a prototype's type, shape and device. Errors go to `set_error`.
    int (*allocate)(Tensor* prototype, OwnedTensor** made, void* context,
                    void (*set_error)(void* context, const char* kind, const char* message));
    int (*own)(void* object, OwnedTensor** owned);
    // Makes the framework's tensor of the same memory, and takes ownership.
    int (*give)(OwnedTensor* tensor, void** object);
    // Describes an object without taking a reference: valid until other code runs.
    int (*look)(void* object, Tensor* seen);
    int (*stream)(std::int32_t device_type, std::int32_t device, void** stream);
};

}  // namespace maxops::dlpack
