package records

// Member is a process that serves shards of a store.
type Member struct {
	// Address is its gRPC address: host:port or unix:PATH.
	Address string
	// Certificate is the SHA-256 of its server certificate; empty without TLS.
	Certificate []byte
	// Host identifies processes that share a loopback interface; empty if unknown.
	Host []byte
}
