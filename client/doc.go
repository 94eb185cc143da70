// Package client is the API of a farm: it submits jobs, follows them across restarts and broken connections, reads
// devices and records, and runs packages. It depends on the wire, but not on the services. Start with Client.
package client
