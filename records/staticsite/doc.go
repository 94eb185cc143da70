// Package staticsite publishes records as files for any web server, and reads them back. An index lists the chunks of
// each target and workload by digest; a chunk is a compressed export. Readers fetch the index and the chunks they
// need. Start with Write and Open.
//
// Only the index of a server is trusted: chunks must have the digests and sizes that it lists, which are bounded, and
// records are validated like imported ones.
package staticsite
