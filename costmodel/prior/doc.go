// Package prior has the cost models that come with the program. A search of a machine that nothing is known of begins
// with what was measured on others like it.
package prior
