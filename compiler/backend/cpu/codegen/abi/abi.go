package abi

import _ "embed"

// HeaderName is the name under which C sources include the header.
const HeaderName = "tilth_kernel.h"

// Header is the text of the header.
//
//go:embed tilth_kernel.h
var Header string
