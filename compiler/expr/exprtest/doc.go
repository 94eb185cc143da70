// Package exprtest provides workloads that tests of several packages share.
package exprtest
