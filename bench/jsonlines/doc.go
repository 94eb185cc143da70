// Package jsonlines keeps rows in a file, a line of JSON each, to which runs append.
package jsonlines
