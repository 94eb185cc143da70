// Package devicecode extracts the code of GPU modules for tests.
package devicecode
