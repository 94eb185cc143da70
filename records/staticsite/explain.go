package staticsite

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

var errSlow = errors.New("it takes too long to answer: check the connection, and try again")

// statusError explains an HTTP status other than OK.
func statusError(code int) error {
	switch code {
	case http.StatusNotFound, http.StatusGone:
		return fmt.Errorf("not found on the server (%d): check the address, and that 'tilth records export --static' wrote the folder", code)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the server denies access (%d): ask its operator", code)
	}
	return fmt.Errorf("the server answers %d %s: try again later", code, http.StatusText(code))
}

// explain replaces the errors of network libraries by messages that name the cause and the remedy.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var slow net.Error
	if errors.Is(context.Cause(ctx), errSlow) || errors.As(err, &slow) && slow.Timeout() {
		return errSlow
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if call, is := errors.AsType[*url.Error](err); is {
		err = call.Err
	}
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var host *net.DNSError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("the server's certificate is signed by an unknown authority: name its authorities with --tls-ca: %w", err)
	case errors.As(err, &verify):
		return fmt.Errorf("the server's certificate is not valid for it: check the address: %w", err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("the server does not speak TLS: check the address and its port: %w", err)
	case errors.As(err, &host):
		return fmt.Errorf("the server's host name is not known: check its spelling, and DNS: %w", err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the server ended the connection: try again: %w", err)
	}
	if op, is := errors.AsType[*net.OpError](err); is && op.Op == "dial" {
		return fmt.Errorf("the server cannot be reached: check that it runs: %w", err)
	}
	return err
}
