// Package prior embeds the cost models that ship with the program. They let searches on a machine without
// records start from measurements of similar machines.
package prior
