// Package prior has the cost models that come with the program: searches on a machine without records begin with
// measurements of similar machines.
package prior
