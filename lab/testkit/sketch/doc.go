// Package sketch has small models for tests of the front end, a line a node, and what their programs must fulfil: that
// they compute what the model says, and read nothing before it is computed. Begin to read at model.go.
package sketch
