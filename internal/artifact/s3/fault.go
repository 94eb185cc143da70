package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/tilth-dev/tilth/internal/artifact"
)

// fault translates a library error into one with a remedy. Cancellation by the caller is returned as it is.
func (b *Bucket) fault(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s in %s: %w", what, b, context.Cause(ctx))
	}
	answer := minio.ToErrorResponse(err)
	switch answer.Code {
	case "NoSuchKey", "NoSuchUpload":
		return fmt.Errorf("%s in %s: %w", what, b, fs.ErrNotExist)
	case "QuotaExceeded", "XMinioStorageFull", "InsufficientCapacity":
		return fmt.Errorf("%w: %s: the object store is full (%s): free some space, or lower --artifact-space", artifact.ErrFull, what, b)
	}
	err = fmt.Errorf("%w: %s in %s: %s", artifact.ErrAway, what, b, b.remedy(answer, err))
	if misaddressed(answer) {
		return &addressError{err}
	}
	return err
}

// addressError is a permanent refusal by a reachable server.
type addressError struct{ error }

func (e *addressError) Unwrap() error { return e.error }

// IsAddressError reports whether an error means a wrong address or wrong credentials, which retries cannot fix.
func IsAddressError(err error) bool {
	_, is := errors.AsType[*addressError](err)
	return is
}

func misaddressed(answer minio.ErrorResponse) bool {
	switch answer.Code {
	case "NoSuchBucket", "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return true
	}
	return answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden
}

// remedy explains why the server refused a request.
func (b *Bucket) remedy(answer minio.ErrorResponse, err error) string {
	switch answer.Code {
	case "NoSuchBucket":
		return fmt.Sprintf("%s has no bucket %s: create it, or correct --artifacts", b.Endpoint, b.Bucket)
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return fmt.Sprintf("the bucket is in another region (%s): add region=REGION to --artifacts", answer.Message)
	case "RequestTimeTooSkewed":
		return "its clock and this machine's differ: set the time"
	case "SlowDown", "ServiceUnavailable", "TooManyRequests":
		return fmt.Sprintf("%s is overloaded (%s): the tracker tries again", b.Endpoint, answer.Code)
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprintf("it refuses the tracker's credentials (%s): correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "+
			"and allow to list, get, put and delete objects and to list and abort multipart uploads", answer.Code)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return fmt.Sprintf("%s is overloaded (%d): the tracker tries again", b.Endpoint, answer.StatusCode)
	}
	return fmt.Sprintf("%s does not answer as it should (%v): start it, or correct endpoint= in --artifacts", b.Endpoint, err)
}
