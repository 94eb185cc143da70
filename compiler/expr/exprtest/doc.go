// Package exprtest has workloads that tests of several packages begin with.
package exprtest
