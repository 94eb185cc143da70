// Package document writes generated parts into documents.
package document
