// Package feature says which instructions a processor has that schedules are made for and code is printed with. Begin
// with Tiles.
package feature
