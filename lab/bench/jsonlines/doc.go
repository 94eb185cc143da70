// Package jsonlines keeps rows in a file to which runs append: a line of JSON each.
package jsonlines
