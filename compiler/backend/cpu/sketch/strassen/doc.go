// Package strassen is the sketch of products by one step of Strassen's algorithm.
package strassen
