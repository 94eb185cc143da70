// Package document replaces generated parts of documents.
package document
