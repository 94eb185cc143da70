// ONNX Runtime's interface for a plug-in, which gets the functions from the runtime.
#pragma once
#ifndef ORT_API_MANUAL_INIT
#define ORT_API_MANUAL_INIT
#endif
#include <onnxruntime_cxx_api.h>

static_assert(ORT_API_VERSION >= 23, "headers of ONNX Runtime 1.23 or newer are needed");
