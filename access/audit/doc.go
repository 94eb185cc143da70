// Package audit writes down who did what on a tracker: JSON lines, in files of bounded size.
package audit
