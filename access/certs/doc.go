// Package certs makes the certificates of a farm, and uses those that are in files: they are read again when they
// change.
package certs
