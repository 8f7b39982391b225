# A bridge in a container: docker build -t seustream . && docker run -p 127.0.0.1:8815:8815 \
#     -e SEUSTREAM_TOKEN=$(openssl rand -hex 16) -v seustream:/var/lib/seustream seustream
FROM python:3.11-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /src

FROM python:3.11-slim-bookworm
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && rm -r /wheels \
    && useradd --system --create-home --home-dir /var/lib/seustream seustream
USER seustream
VOLUME /var/lib/seustream
EXPOSE 8815
# Others can reach it, so it has a token; the shell leaves it in a file, where the bridge wants it.
CMD ["sh", "-c", "umask 077 && printf %s \"${SEUSTREAM_TOKEN:?set SEUSTREAM_TOKEN, 16 characters or more}\" > /tmp/token && exec seustream serve --listen grpc://0.0.0.0:8815 --token-file /tmp/token --journal /var/lib/seustream/journal"]
