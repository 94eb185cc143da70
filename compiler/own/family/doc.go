// Package family makes kernels that somebody wrote a part of the space that a search draws candidates from.
package family
