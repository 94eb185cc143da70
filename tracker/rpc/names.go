package rpc

import (
	"strings"

	"github.com/tilth-dev/tilth/records"
)

// checkName refuses a name that is empty or too long for a key of the store.
func checkName(field, name string) error {
	if name == "" {
		return invalid(field, "is empty")
	}
	if len(name) > records.MaxNameBytes {
		return invalid(field, "has %d bytes, more than the limit of %d", len(name), records.MaxNameBytes)
	}
	return nil
}

// checkKeyName refuses a name with a zero byte, which separates the parts of keys.
func checkKeyName(field, name string) error {
	if err := checkName(field, name); err != nil {
		return err
	}
	if strings.IndexByte(name, 0) >= 0 {
		return invalid(field, "holds a zero byte")
	}
	return nil
}
