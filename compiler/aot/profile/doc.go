// Package profile breaks down a model's execution time by kernel call, against the machine's limits. Start with Of.
package profile
