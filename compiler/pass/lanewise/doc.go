// Package lanewise is the pass that takes vector loops apart where a machine has no vectors for what they do: values
// without a vector form are computed lane by lane, and lanes that do not lie side by side are stored one by one.
package lanewise
