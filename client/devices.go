package client

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tilth-dev/tilth/internal/retry"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// drainWait is how long one call waits for a device to drain.
const drainWait = 20 * time.Second

// Devices returns all devices that ever joined, by name.
func (c *Client) Devices(ctx context.Context) (devices []*tilthv1.Device, err error) {
	err = c.pages(ctx, "list devices", func(ctx context.Context, token string) (string, error) {
		page, err := c.devices.ListDevices(ctx, &tilthv1.ListDevicesRequest{PageSize: itemsPerPage, PageToken: token})
		devices = append(devices, page.GetDevices()...)
		return page.GetNextPageToken(), err
	})
	return devices, err
}

// Device returns one device.
func (c *Client) Device(ctx context.Context, name string) (*tilthv1.Device, error) {
	return get(ctx, c, fmt.Sprintf("show device %q", name), &tilthv1.GetDeviceRequest{Name: name}, c.devices.GetDevice, (*tilthv1.GetDeviceResponse).GetDevice)
}

// Cordon stops granting work to a device for a duration, or, if zero, until it is uncordoned.
func (c *Client) Cordon(ctx context.Context, name, by, reason string, duration time.Duration) (*tilthv1.Device, error) {
	request := &tilthv1.CordonDeviceRequest{Name: name, By: by, Reason: reason}
	if duration != 0 {
		request.Duration = durationpb.New(duration)
	}
	return get(ctx, c, fmt.Sprintf("cordon device %q", name), request, c.devices.CordonDevice, (*tilthv1.CordonDeviceResponse).GetDevice)
}

// Uncordon lets a device receive work again.
func (c *Client) Uncordon(ctx context.Context, name, by, reason string) (*tilthv1.Device, error) {
	return get(ctx, c, fmt.Sprintf("uncordon device %q", name), &tilthv1.UncordonDeviceRequest{Name: name, By: by, Reason: reason}, c.devices.UncordonDevice, (*tilthv1.UncordonDeviceResponse).GetDevice)
}

// Recalibrate discards the calibration reference of a device and ends its quarantine.
func (c *Client) Recalibrate(ctx context.Context, name, by, reason string) (*tilthv1.Device, error) {
	return get(ctx, c, fmt.Sprintf("recalibrate device %q", name), &tilthv1.RecalibrateDeviceRequest{Name: name, By: by, Reason: reason}, c.devices.RecalibrateDevice, (*tilthv1.RecalibrateDeviceResponse).GetDevice)
}

// Drain cordons a device and returns when its leases in flight have ended, also across restarts of the tracker. If ctx
// ends, it returns the cause, and the device stays cordoned. waiting is called with the device during the drain.
func (c *Client) Drain(ctx context.Context, name, by, reason string, waiting func(*tilthv1.Device)) (*tilthv1.Device, error) {
	if _, err := c.Device(ctx, name); err != nil {
		return nil, err
	}
	request := &tilthv1.DrainDeviceRequest{Name: name, By: by, Reason: reason}
	for {
		var response *tilthv1.DrainDeviceResponse
		err := retry.Do(ctx, c.log, retry.Policy{}, "DrainDevice", func(ctx context.Context) (err error) {
			response, err = c.devices.DrainDevice(ctx, request)
			return err
		})
		switch d := response.GetDevice(); {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, c.explain(fmt.Sprintf("drain device %q", name), err)
		case d.GetState() != tilthv1.DeviceState_DEVICE_STATE_DRAINING:
			return d, nil
		default:
			waiting(d)
		}
		request.Wait = durationpb.New(drainWait)
	}
}
