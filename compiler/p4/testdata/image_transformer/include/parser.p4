#define ETHERTYPE_IPV4 0x0800
#define PROTOCOL_UDP 17
#define JOB_PORT 4369

parser start {
    return parse_eth;
}

parser parse_eth {
    extract(eth);
    set_metadata(tmp.mac, eth.dstAddr);
    return select (eth.etherType) {
        ETHERTYPE_IPV4 : parse_ipv4;
        default : ingress;
    }
}

parser parse_ipv4 {
    extract(ipv4);
    set_metadata(tmp.ip, latest.dstAddr);
    return select (ipv4.fragOffset, ipv4.protocol) {
        PROTOCOL_UDP : parse_udp;
        default : ingress;
    }
}

parser parse_udp {
    extract(udp);
    set_metadata(tmp.port, udp.dstPort);
    return select (udp.dstPort) {
        JOB_PORT : parse_job;
        default : ingress;
    }
}

parser parse_job {
    extract(job);
    return ingress;
}
