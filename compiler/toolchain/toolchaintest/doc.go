// Package toolchaintest is what tests need that compile for the machine they run on.
package toolchaintest
