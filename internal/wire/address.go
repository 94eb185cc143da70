package wire

import (
	"fmt"
	"net"
	"strings"
)

// Addresses splits a comma-separated list of addresses.
func Addresses(list string) []string { return strings.Split(list, ",") }

// maxAddresses bounds a list of addresses.
const maxAddresses = 16

// CheckAddresses checks a comma-separated list of addresses to dial.
func CheckAddresses(list string) error {
	all := Addresses(list)
	if len(all) > maxAddresses {
		return fmt.Errorf("there are %d addresses: want %d at most", len(all), maxAddresses)
	}
	for _, addr := range all {
		if err := CheckAddress(addr); err != nil {
			return err
		}
	}
	return nil
}

// CheckAddress checks an address to listen on or to dial: host:port or unix:PATH.
func CheckAddress(addr string) error {
	if path, is := strings.CutPrefix(addr, "unix:"); is {
		if path == "" {
			return fmt.Errorf("%q names no socket: want unix:PATH", addr)
		}
		return nil
	}
	if scheme, rest, is := strings.Cut(addr, "://"); is {
		rest = strings.TrimRight(rest, "/")
		if scheme == "https" {
			return fmt.Errorf("%q is not an address: leave %s:// out (%s) and turn TLS on with --tls-ca", addr, scheme, rest)
		}
		return fmt.Errorf("%q is not an address: leave %s:// out (%s)", addr, scheme, rest)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q is not host:port or unix:PATH", addr)
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return fmt.Errorf("address %q: %q is not a port: want 0 to 65535", addr, port)
	}
	return nil
}
