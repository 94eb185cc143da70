package records

// Member is a process that serves some of a store's shards, as others of its kind see it.
type Member struct {
	// Address is where it answers calls: host:port or unix:PATH.
	Address string
	// Certificate is the SHA-256 of the certificate that it shows there; empty = it speaks without TLS.
	Certificate []byte
	// Host is alike for the processes that share a loopback interface, and for no others; empty = not known.
	Host []byte
}
