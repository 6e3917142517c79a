# docker build -t plimsoll . && docker run --rm -v "$PWD:/work" plimsoll train config.yaml --text text.txt
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends make ca-certificates git
COPY . /src
RUN make -C /src deb

FROM debian:12-slim
COPY --from=build /src/build-package/plimsoll_*.deb /tmp/
RUN apt-get update && apt-get install -y /tmp/plimsoll_*.deb \
    && rm -rf /tmp/plimsoll_*.deb /var/lib/apt/lists/*
WORKDIR /work
ENTRYPOINT ["plimsoll"]
