// Package deb writes packages for Debian (deb(5)): an ar archive of the format's version, the package's description,
// and its files.
package deb
