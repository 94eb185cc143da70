package toolchaintest

import (
	"bytes"
	"fmt"
)

// DeviceCode returns the code in a module of kernels for a card and its assembled form, if any. ok is false if the
// input is not a module.
func DeviceCode(module []byte) (code, assembled []byte, ok bool) {
	if !bytes.HasPrefix(module, []byte("tilth-device-module 4\n")) {
		return nil, nil, false
	}
	for rest := module; len(rest) > 0; {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		var size, more int
		if n, err := fmt.Sscanf(string(line), "code %d %d", &size, &more); err == nil && n == 2 {
			if size < 0 || size > len(after) || more != len(after)-size {
				return nil, nil, false
			}
			return after[:size], after[size:], true
		}
		rest = after
	}
	return nil, nil, false
}
