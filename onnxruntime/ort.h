// ONNX Runtime's interface, of a library that the runtime loads: which gives it the functions.
#pragma once
#ifndef ORT_API_MANUAL_INIT
#define ORT_API_MANUAL_INIT
#endif
#include <onnxruntime_cxx_api.h>

static_assert(ORT_API_VERSION >= 23, "headers of ONNX Runtime 1.23 or newer are needed");
