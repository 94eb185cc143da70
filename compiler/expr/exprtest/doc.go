// Package exprtest has workloads that tests of several packages share.
package exprtest
