// Package recordsource reads and adds records in a file, at a tracker or in an export. Start with Source.
package recordsource
