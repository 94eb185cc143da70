// Package flood is a test client that starts messages without finishing them, or makes calls without reading answers.
// Tests use it to measure the server's memory.
package flood
