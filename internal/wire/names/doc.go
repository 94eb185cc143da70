// Package names has the names of the wire's enums for users, scripts and metrics: "wrong_result" for
// ERROR_CLASS_WRONG_RESULT.
package names
