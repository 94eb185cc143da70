// Package humanize formats values for people: numbers with units, counts and aligned tables.
package humanize
