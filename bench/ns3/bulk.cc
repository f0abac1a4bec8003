// A transfer over TCP NewReno between two ns-3 hosts on one wire: what the house compares its own with.
//
//   bulk [--bytes=N] [--rate=BITS] [--delay=MS] [--queue=PACKETS] [--recovery=NAME] [--down=S --up=S] [--lost-syn] [--trace]
//        [--checksums] [--payload]
//
// As it comes ns-3 neither makes nor checks a checksum, and the bytes of a payload are nowhere: a packet says only how many
// they are. With --checksums each is made and checked; with --payload the bytes are there: those that the house's own server
// sends, and each is compared on arrival.
//
// It prints one line of JSON; with --trace, before that, a line for each change of the congestion window, of the threshold
// and of the time-out, and for each segment with data that leaves: seconds, what, value.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

using namespace ns3;

namespace
{
// What follows is shared by callbacks, which ns-3 wants as plain functions here.
uint64_t wanted = 16 << 20;
uint64_t arrived = 0;
uint64_t written = 0;
uint64_t frames = 0;
double done = 0;
bool payload = false;
bool wrong = false;

double Seconds_()
{
    return Simulator::Now().GetSeconds();
}

// The stream's bytes from this place on: a number for each eight, as apps::bulk has them.
const std::vector<uint8_t>& Pattern(uint64_t from, uint32_t size)
{
    static std::vector<uint8_t> bytes;
    const uint64_t skip = from % 8;
    bytes.resize((skip + size + 7) / 8 * 8);
    for (uint64_t at = 0; at < bytes.size(); at += 8)
    {
        const uint64_t word = (from / 8 + at / 8) * 0x9e3779b97f4a7c15;
        std::memcpy(&bytes[at], &word, 8);
    }
    bytes.erase(bytes.begin(), bytes.begin() + skip);
    bytes.resize(size);
    return bytes;
}

// Writes as much as there is room for.
void Write(Ptr<Socket> socket, uint32_t room)
{
    while (written < wanted && room > 0)
    {
        const uint32_t size = std::min<uint64_t>({1460, room, wanted - written});
        const int taken = socket->Send(Pattern(written, size).data(), size, 0);
        if (taken <= 0)
        {
            return;
        }
        written += taken;
        room = socket->GetTxAvailable();
    }
}

void Connected(Ptr<Socket> socket)
{
    Write(socket, socket->GetTxAvailable());
}

void Serve(Ptr<Node> node, Address to)
{
    auto socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
    socket->SetConnectCallback(MakeCallback(&Connected), MakeNullCallback<void, Ptr<Socket>>());
    socket->SetSendCallback(MakeCallback(&Write));
    socket->Connect(to);
}

void Arrived(Ptr<const Packet> packet, const Address&)
{
    if (payload)
    {
        static std::vector<uint8_t> bytes;
        bytes.resize(packet->GetSize());
        packet->CopyData(bytes.data(), bytes.size());
        wrong |= bytes != Pattern(arrived, bytes.size());
    }
    arrived += packet->GetSize();
    if (arrived >= wanted && done == 0)
    {
        done = Seconds_();
        Simulator::Stop();
    }
}

void FrameSent(Ptr<const Packet>)
{
    ++frames;
}

void Bytes(std::string what, uint32_t, uint32_t now)
{
    std::printf("%.6f %s %u\n", Seconds_(), what.c_str(), now);
}

void TimeOut(Time, Time now)
{
    std::printf("%.6f rto %.6f\n", Seconds_(), now.GetSeconds());
}

void Segment(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
{
    if (header.GetFlags() & TcpHeader::SYN)
    {
        std::printf("%.6f syn 0\n", Seconds_());
    }
    else if (packet->GetSize() > 0)
    {
        std::printf("%.6f data %u\n", Seconds_(), header.GetSequenceNumber().GetValue());
    }
}

// The sender's socket is there only once its application has begun.
void Watch()
{
    const std::string socket = "/NodeList/0/$ns3::TcpL4Protocol/SocketList/*/";
    Config::ConnectWithoutContext(socket + "CongestionWindow", MakeBoundCallback(&Bytes, std::string("cwnd")));
    Config::ConnectWithoutContext(socket + "SlowStartThreshold",
                                  MakeBoundCallback(&Bytes, std::string("ssthresh")));
    Config::ConnectWithoutContext(socket + "RTO", MakeCallback(&TimeOut));
    Config::ConnectWithoutContext(socket + "Tx", MakeCallback(&Segment));
}

// Whatever a device hears between two instants is lost.
void Deafen(Ptr<NetDevice> device, double down, double up)
{
    auto errors = CreateObject<RateErrorModel>();
    errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    errors->SetRate(1.0);
    errors->Disable();
    device->SetAttribute("ReceiveErrorModel", PointerValue(errors));
    Simulator::Schedule(Seconds(down), &RateErrorModel::Enable, errors);
    Simulator::Schedule(Seconds(up), &RateErrorModel::Disable, errors);
}

// What a host of the scenario evidence/bulk has, said in ns-3's words.
void SetTcp(const std::string& recovery, uint32_t segment, uint32_t buffer, uint32_t window, double delayedAck)
{
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TypeId::LookupByName("ns3::" + recovery)));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(window));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(Seconds(delayedAck)));
}
} // namespace

int main(int argc, char** argv)
{
    uint64_t rate = 2000000;
    uint32_t delay = 20;
    uint32_t queue = 20;
    uint32_t window = 3;
    std::string recovery = "TcpClassicRecovery"; // RFC 6582; ns-3's own choice is TcpPrrRecovery, RFC 6937
    double down = 0;
    double up = 0;
    bool lostSyn = false;
    bool trace = false;
    bool checksums = false;
    CommandLine line;
    line.AddValue("bytes", "bytes to send", wanted);
    line.AddValue("rate", "bits a second", rate);
    line.AddValue("delay", "one way, in ms", delay);
    line.AddValue("queue", "packets that may wait", queue);
    line.AddValue("window", "initial window, in segments", window);
    line.AddValue("recovery", "what is done in fast recovery", recovery);
    line.AddValue("down", "the wire loses all from here on, in s", down);
    line.AddValue("up", "until here", up);
    line.AddValue("lost-syn", "the first SYN is lost", lostSyn);
    line.AddValue("trace", "print what happens inside", trace);
    line.AddValue("checksums", "of headers and payloads, made and checked", checksums);
    line.AddValue("payload", "has bytes, which are compared on arrival", payload);
    line.Parse(argc, argv);
    GlobalValue::Bind("ChecksumEnabled", BooleanValue(checksums));
    SetTcp(recovery, 1460, 64240, window, 0.2);

    NodeContainer hosts(2);
    PointToPointHelper wire;
    wire.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    wire.SetChannelAttribute("Delay", TimeValue(MilliSeconds(delay)));
    wire.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queue)));
    NetDeviceContainer devices = wire.Install(hosts);
    InternetStackHelper().Install(hosts);
    auto addresses = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
    TrafficControlHelper().Uninstall(devices); // one queue, the wire's

    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5001));
    sink.Install(hosts.Get(1)).Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Arrived));
    const InetSocketAddress to(addresses.GetAddress(1), 5001);
    if (payload)
    {
        Simulator::ScheduleNow(&Serve, hosts.Get(0), to);
    }
    else
    {
        BulkSendHelper bulk("ns3::TcpSocketFactory", to);
        bulk.SetAttribute("MaxBytes", UintegerValue(wanted));
        bulk.SetAttribute("SendSize", UintegerValue(1460));
        bulk.Install(hosts.Get(0));
    }

    for (uint32_t end = 0; end < 2; ++end)
    {
        devices.Get(end)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&FrameSent));
        if (up > down || lostSyn)
        {
            Deafen(devices.Get(end), down, lostSyn ? 0.5 : up);
        }
    }
    if (trace)
    {
        Simulator::Schedule(MicroSeconds(1), &Watch);
    }
    Simulator::Stop(Seconds(4000));
    const auto before = std::chrono::steady_clock::now();
    Simulator::Run();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - before;
    std::printf("{\"simulated_s\":%.6f,\"wall_s\":%.6f,\"bytes\":%lu,\"hops\":%lu,\"events\":%lu}\n",
                done,
                wall.count(),
                static_cast<unsigned long>(arrived),
                static_cast<unsigned long>(frames),
                static_cast<unsigned long>(Simulator::GetEventCount()));
    Simulator::Destroy();
    return done > 0 && !wrong ? 0 : 1;
}
