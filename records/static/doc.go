// Package static keeps records as files that any web server can serve, and reads them from there. An index lists, for
// each target and workload, chunks by their digests; a chunk is an export of records as any other, compressed. Who
// reads fetches the index and the chunks of the workloads that he wants. Begin with Write and Open.
//
// Nothing that a server says is trusted beyond the index: chunks have the digests and sizes that the index says, which
// are bounded, and records are validated as those of an import are.
package static
