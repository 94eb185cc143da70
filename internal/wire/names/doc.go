// Package names has the names of the wire's enums as people, scripts and metrics read them: "wrong_result" for
// ERROR_CLASS_WRONG_RESULT.
package names
