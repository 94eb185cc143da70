// Package trap keeps the compiler's own bugs from taking an agent down with them.
package trap
