// Package deb writes Debian packages (deb(5)): an ar archive with the format version, the package's description and
// its files.
package deb
