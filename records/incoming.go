package records

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/tilth-dev/tilth/internal/wire/bounds"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// Incoming makes records that come from outside fit to be stored.
type Incoming struct {
	bounds *bounds.Checker // holds records from a file against what the wire takes
}

// NewIncoming returns one that any number of records may go through.
func NewIncoming() (*Incoming, error) {
	checker, err := bounds.New()
	if err != nil {
		return nil, err
	}
	return &Incoming{bounds: checker}, nil
}

// Admit says what is wrong with a record; the error wraps ErrInvalid. One that is right is cut to what is stored, and
// loses its job, which belongs to the tracker that made it.
func (i *Incoming) Admit(r *tilthv1.Record) error {
	if err := Validate(r); err != nil {
		return err
	}
	r.JobId = ""
	CutMeasurement(r.GetMeasurement())
	if err := i.bounds.Message(r); err != nil {
		return &InvalidError{Field: fieldOf(err), Text: status.Convert(err).Message()}
	}
	return nil
}

// fieldOf is the field that a refusal of the wire's bounds names.
func fieldOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if request, is := detail.(*errdetails.BadRequest); is && len(request.GetFieldViolations()) > 0 {
			return request.GetFieldViolations()[0].GetField()
		}
	}
	return ""
}
