// Hosts below a tree of routers, each sending a datagram with 64 bytes of payload once a second to the root: the scenario
// scale/tree, in ns-3. A root, 10 regions, 100 areas, 1000 stations; host h, from 0, is below station h mod 1000 and begins
// at (h mod 1000) ms. All links are point-to-point, 100 Mb/s and 1 ms. Each router forwards by its own static route.
//
//   tree [--hosts=N] [--seconds=S]
//
// It prints one line of JSON.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{
uint64_t frames = 0;

void FrameSent(Ptr<const Packet>)
{
    ++frames;
}

// The largest resident set so far, in bytes.
uint64_t Peak()
{
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
    {
        if (word == "VmHWM:")
        {
            uint64_t kilobytes = 0;
            status >> kilobytes;
            return kilobytes * 1024;
        }
    }
    return 0;
}

// The number of each node's parent; the root's own is not used. `first` becomes the number of the first host.
std::vector<uint32_t> Parents(uint32_t hosts, uint32_t& first)
{
    const uint32_t fanout = 10;
    const uint32_t levels = 3;
    std::vector<uint32_t> parents{0};
    uint32_t begin = 0;
    for (uint32_t level = 0; level < levels; ++level)
    {
        const uint32_t end = parents.size();
        for (uint32_t node = begin; node < end; ++node)
        {
            parents.insert(parents.end(), fanout, node);
        }
        begin = end;
    }
    first = parents.size();
    const uint32_t stations = first - begin;
    for (uint32_t host = 0; host < hosts; ++host)
    {
        parents.push_back(begin + host % stations);
    }
    return parents;
}
} // namespace

int main(int argc, char** argv)
{
    uint32_t hosts = 1000;
    double seconds = 10;
    CommandLine line;
    line.AddValue("hosts", "hosts below the stations", hosts);
    line.AddValue("seconds", "how long, in virtual time", seconds);
    line.Parse(argc, argv);

    using Clock = std::chrono::steady_clock;
    const auto begun = Clock::now();
    uint32_t first = 0;
    const std::vector<uint32_t> parents = Parents(hosts, first);
    NodeContainer nodes(parents.size());
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.Install(nodes);
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    wire.SetChannelAttribute("Delay", StringValue("1ms"));
    Ipv4StaticRoutingHelper routing;
    Ipv4AddressHelper networks("10.0.0.0", "255.255.255.252");
    Ipv4Address root;
    for (uint32_t node = 1; node < parents.size(); ++node)
    {
        NetDeviceContainer ends = wire.Install(nodes.Get(parents[node]), nodes.Get(node));
        Ipv4InterfaceContainer addresses = networks.Assign(ends);
        networks.NewNetwork();
        if (node == 1)
        {
            root = addresses.GetAddress(0);
        }
        const uint32_t upwards = 1;
        routing.GetStaticRouting(nodes.Get(node)->GetObject<Ipv4>())
            ->SetDefaultRoute(addresses.GetAddress(0), upwards);
        ends.Get(1)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&FrameSent));
    }
    PacketSinkHelper sinks("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    auto sink = DynamicCast<PacketSink>(sinks.Install(nodes.Get(0)).Get(0));
    UdpClientHelper clients(root, 9);
    clients.SetAttribute("PacketSize", UintegerValue(64));
    clients.SetAttribute("Interval", TimeValue(Seconds(1)));
    clients.SetAttribute("MaxPackets", UintegerValue(UINT32_MAX));
    for (uint32_t host = 0; host < hosts; ++host)
    {
        clients.Install(nodes.Get(first + host)).Start(MilliSeconds(host % 1000));
    }
    Simulator::Stop(Seconds(seconds));
    const auto ready = Clock::now();
    Simulator::Run();
    const auto ended = Clock::now();
    const std::chrono::duration<double> setup = ready - begun;
    const std::chrono::duration<double> wall = ended - ready;
    std::printf("{\"hosts\":%u,\"simulated_s\":%.3f,\"setup_s\":%.6f,\"wall_s\":%.6f,\"events\":%lu,\"hops\":%lu,"
                "\"delivered\":%lu,\"peak_bytes\":%lu}\n",
                static_cast<uint32_t>(parents.size()),
                seconds,
                setup.count(),
                wall.count(),
                static_cast<unsigned long>(Simulator::GetEventCount()),
                static_cast<unsigned long>(frames),
                static_cast<unsigned long>(sink->GetTotalRx() / 64),
                static_cast<unsigned long>(Peak()));
    Simulator::Destroy();
    return 0;
}
