// Package tiles is the pass that has a processor's instructions for tiles compute sums of products: it places
// the tiles that keep sums, loads those of operands, and stores sums where they are done. Begin with Run.
package tiles
