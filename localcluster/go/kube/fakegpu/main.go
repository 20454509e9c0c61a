// A stand-in for NVIDIA's device plugin: it offers the kubelet GPUs that do not exist, by the same interface, so that
// the scheduler and the kubelet count them as they count real ones. No device ever appears in a container.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	socketName = "fakegpu.sock"
	interval   = time.Second
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	devices []*api.Device
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch says once which devices there are; they never change and are never ill.
func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	if err := stream.Send(&api.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	return &api.AllocateResponse{
		ContainerResponses: make([]*api.ContainerAllocateResponse, len(request.ContainerRequests)),
	}, nil
}

func (p *plugin) serve(socket string) (*grpc.Server, error) {
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

func register(resource string) error {
	connection, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: socketName, ResourceName: resource,
	})
	return err
}

func main() {
	resource := flag.String("resource", "nvidia.com/gpu", "name of the extended resource")
	count := flag.Int("count", 1, "how many devices to offer")
	flag.Parse()
	p := &plugin{}
	for i := range *count {
		p.devices = append(p.devices, &api.Device{ID: fmt.Sprintf("fake-%d", i), Health: api.Healthy})
	}
	socket := filepath.Join(api.DevicePluginPath, socketName)
	for ; ; time.Sleep(interval) {
		server, err := p.serve(socket)
		if err == nil {
			err = register(*resource)
		}
		if err != nil {
			log.Printf("not registered yet: %v", err)
		} else {
			log.Printf("registered %d %s", *count, *resource)
			// A kubelet that starts forgets its plugins and empties their folder: the lost socket says so.
			for _, err = os.Stat(socket); err == nil; _, err = os.Stat(socket) {
				time.Sleep(interval)
			}
		}
		if server != nil {
			server.Stop()
		}
	}
}
